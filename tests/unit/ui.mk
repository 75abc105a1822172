# unit tests of ui
