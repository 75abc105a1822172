# unit tests of format
