# unit tests of text
