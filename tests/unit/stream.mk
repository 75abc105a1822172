# unit tests of stream
