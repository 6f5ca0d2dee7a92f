"""
Imported by every Python process that the tests start: no network but the machine itself.

Attempts are refused, and noted in the file that `NETWORK_ATTEMPTS` names.
"""

import os
import socket

LOCAL = {None, "", "localhost", "127.0.0.1", "::1", "0.0.0.0", socket.gethostname()}


def _guarded(function, host_of):
    def guarded(*args, **kwargs):
        host = host_of(*args)
        if host not in LOCAL and os.environ.get("NETWORK_ATTEMPTS"):
            with open(os.environ["NETWORK_ATTEMPTS"], "a") as file:
                file.write(f"{function.__name__} {host}\n")
            raise OSError(f"the tests allow no network: {function.__name__} {host}")
        return function(*args, **kwargs)

    return guarded


socket.getaddrinfo = _guarded(socket.getaddrinfo, lambda host, *args: host)
socket.gethostbyname = _guarded(socket.gethostbyname, lambda host: host)
socket.socket.connect = _guarded(
    socket.socket.connect, lambda self, address: address[0] if isinstance(address, tuple) else None
)
