# ui: the screen.  Includes only engine/memwall.h from the engine.
