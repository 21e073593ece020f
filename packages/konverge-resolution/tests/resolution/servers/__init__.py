"""Servers that tests of resolvers talk to, on free ports of the loopback interface."""
