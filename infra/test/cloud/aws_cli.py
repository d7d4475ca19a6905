"""The AWS CLI without its start, which takes four times as long as a call: it is loaded once, and each call is a fork of it.

It prints its port. A call is the line of a folder, in which `in` has the arguments, each with a NUL behind it.
The CLI runs in that folder, and writes its output into `out` and `err` there. The answer is the exit code.
"""

import os
import pathlib
import socketserver
import sys
import time
import types

from awscli.botocore import waiter
from awscli.clidriver import create_clidriver


class Call(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        os.chdir(self.rfile.readline().decode().strip())
        *arguments, _ = pathlib.Path("in").read_text().split("\0")
        for name, number in (("out", 1), ("err", 2)):
            os.dup2(os.open(name, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), number)
        code = 255
        try:
            code = DRIVER.main(arguments)
        except SystemExit as end:
            code = end.code
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            self.wfile.write(b"%d\n" % code)


if __name__ == "__main__":
    DRIVER = create_clidriver()
    for service in {*sys.argv[1:]} & {*DRIVER.session.get_available_services()}:  # their descriptions, read once
        DRIVER.session.create_client(service)
    # `aws … wait` asks an engine, which takes no minutes.
    waiter.time = types.SimpleNamespace(sleep=lambda seconds: time.sleep(min(seconds, 0.2)))
    with socketserver.ForkingTCPServer(("127.0.0.1", 0), Call) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()
