# src: the program.  Includes only engine/memwall.h from the engine.
