# engine/machine: see the header of each module for what it is.
