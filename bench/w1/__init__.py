"""W1: a thousand parents with five children each, on the real control plane; `python -m bench.w1` prints a table.

It compares konverge's operator (`program`), written as an author would, with the floor (`floor`), a plain program that
sends only the six unavoidable requests. Both run in one run one after the other, each with its own control plane and
its own process, so that CPU time and memory are separate.

The parents exist before in both cases. The time runs from the start signal to the imported program until a watch has
seen every parent Ready. The server's audit log provides the requests by user agent. CPU is that of the whole process,
with imports (and existing bytecode), until it is quiet.
"""
