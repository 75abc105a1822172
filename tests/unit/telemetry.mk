# unit tests of telemetry
