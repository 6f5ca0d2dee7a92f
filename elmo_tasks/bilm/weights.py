"""
The official hdf5 file of a biLM's weights, read and written through one table.

Our parameters hold the file's numbers as they are, some of them transposed. What TensorFlow does while it runs, ours does
while it runs: the forget gate's bias is one more than the file says, and the highway's "carry" gate is the share of the
transformation. So a file that was read is written again bit for bit.
"""
