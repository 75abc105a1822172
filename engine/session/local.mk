# engine/session: see the header of each module for what it is.
