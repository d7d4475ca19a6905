package main

// Main is the command itself, for the test binary to be.
func Main() { main() }
