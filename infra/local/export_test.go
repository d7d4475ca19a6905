package main

// Main is the command itself, for the test binary to be.
func Main() { main() }

// Command is a shell command as a terminal of that width shows it.
func Command(width int, words ...string) string { return screen{width: width}.command(words) }
