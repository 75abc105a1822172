# unit tests of src
