# unit tests of compute
