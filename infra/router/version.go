package main

import (
	// Mozilla's root certificates, for an image that has no others.
	_ "golang.org/x/crypto/x509roots/fallback"
)

// version is set by the linker: see infra/release/programs.
var version = "unknown"
