# unit tests of engine
