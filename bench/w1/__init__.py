"""W1: a thousand parents with five children each, on the real control plane; `python -m bench.w1` prints a table.

What is compared: konverge's operator (`program`), written as an author would, and the floor (`floor`), a plain program
that sends the six requests which no operator can do without, and nothing else. Each has a control plane of its own, one
after the other in one run, and a process of its own, so that its CPU time and memory are its alone.

The parents are created beforehand in both cases. The clock runs from the moment when the program, imported and waiting,
is told to go, until a watch has seen every parent Ready. Requests are counted in the server's audit log by user agent.
CPU is that of the whole process, imports included (with bytecode in place), until it is quiet.
"""
