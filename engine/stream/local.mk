# engine/stream: see the header of each module for what it is.
