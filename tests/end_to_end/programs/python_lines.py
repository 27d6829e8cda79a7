import json
import os
import sys
import threading


def write_restart(step):
    with open("plain.dat", "ab") as file:  # line 8
        file.write(b"x" * 100000)  # line 9


class Reader:
    def load(self):
        fd = os.open("plain.dat", os.O_RDONLY)  # line 14
        try:
            return sum(len(os.pread(fd, 50000, i * 50000)) for i in range(4))  # line 16
        finally:
            os.close(fd)  # line 18


def dump():
    with open("données.json", "w") as file:  # line 22
        json.dump({"a": list(range(20000))}, file)  # line 23


def steps():
    for step in range(3):
        write_restart(step)  # line 28
        yield step


def deep(n):
    return write_restart(0) if n == 0 else deep(n - 1)


list(steps())
print(Reader().load())
child = os.fork()
if child == 0:
    os.truncate("plain.dat", 10)  # line 40
    os._exit(3)
print(os.waitpid(child, 0)[1])
thread = threading.Thread(target=dump)
thread.start()
thread.join()
sys.setrecursionlimit(3000)
deep(900)
try:
    os.stat("absent.dat")  # line 49
except FileNotFoundError as error:
    print(error.errno)
