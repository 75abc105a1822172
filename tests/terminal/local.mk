# tests of the program as a whole on a pseudo-terminal
