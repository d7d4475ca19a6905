package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"
)

// An image FROM scratch has no root certificates: the binary has its own.
func TestRootCertificatesWithoutASystem(t *testing.T) {
	if os.Getenv("SSL_CERT_DIR") != t.Name() {
		here := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$") //nolint:gosec // this test
		here.Env = append(os.Environ(), "SSL_CERT_DIR="+t.Name(), "SSL_CERT_FILE="+t.Name(), "GORACE=atexit_sleep_ms=0")
		if out, err := here.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	roots, err := x509.SystemCertPool()
	if err != nil || roots.Equal(x509.NewCertPool()) {
		t.Errorf("there are no roots: %v", err)
	}
}
