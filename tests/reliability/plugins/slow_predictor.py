"""A predictor for the commands that the tests run, by `--include-package slow_predictor`."""

import os
import time

from allennlp.predictors import Predictor

from elmo_tasks.predictors import SentencePredictor


@Predictor.register("slow_for_test")
class SlowPredictor(SentencePredictor):
    """Takes its time, and appends its process and the id of each row to the file that `PREDICTED_ROWS` names."""

    def predict_batch_json(self, inputs):
        for row in inputs:
            time.sleep(0.02)
            with open(os.environ["PREDICTED_ROWS"], "a") as file:
                file.write(f"{os.getpid()} {row['id']}\n")
        return super().predict_batch_json(inputs)

    def predict_json(self, inputs):
        return self.predict_batch_json([inputs])[0]
