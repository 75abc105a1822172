# engine/model: see the header of each module for what it is.
