"""The resolvers that come with konverge: one package or module for each kind of source."""
