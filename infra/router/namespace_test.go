package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"maps"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox.dev/infra/test/kit"
)

var (
	isLong   = flag.Bool("long", false, "TestShipped: also what takes minutes")
	requests = flag.Int("requests", 300, "TestShipped: the number of random requests")
	seed     = flag.Uint64("seed", 1, "TestShipped: of everything random")
)

// inside is the variable that names the folder of the certificate, in the namespaces.
const inside = "SIGNALBOX_IN_NAMESPACES"

// enter makes a machine of its own for router.yaml and envoy.yaml: a network, the providers'
// names, certificates and /run/secrets. $1 is the folder of the certificate.
const enter = `set -eu
ip link set lo up && ip address add 203.0.113.1/32 dev lo
mount -t tmpfs run /run && mkdir /run/secrets
mount --bind "$1/hosts" /etc/hosts
mount --bind "$1/ca.pem" /etc/ssl/certs/ca-certificates.crt
[ -e /etc/resolv.conf ] || { mkdir -p "$(dirname "$(readlink -m /etc/resolv.conf)")" && touch /etc/resolv.conf; } # a link into /run
mount --bind "$1/resolv.conf" /etc/resolv.conf
shift && exec "$@"`

// TestShipped runs router.yaml and envoy.yaml as they are shipped, byte for byte, in
// namespaces with the providers that they name. Envoy is an engine that nobody here wrote.
// An event that must come after another one waits for it.
func TestShipped(t *testing.T) {
	if folder := os.Getenv(inside); folder != "" {
		runShipped(t, folder)
		return
	}
	t.Parallel()
	// An older program than its source would be tested in vain.
	if out, err := exec.CommandContext(t.Context(), "make", "-C", "../..", ".build/router").CombinedOutput(); err != nil {
		t.Fatalf("building the authorizer: %v\n%s", err, out)
	}
	if _, err := os.Stat(envoyBinary); err != nil {
		notRun(t, "Envoy is missing: make build installs it with Python")
	}
	folder := t.TempDir()
	writeNames(t, filepath.Join(folder, "hosts"))
	write(t, filepath.Join(folder, "resolv.conf"), "nameserver 127.0.0.1\n")
	writeCertificate(t, folder)
	var reasons []string
	for _, space := range []string{"unshare -Urnm --map-root-user", "sudo -n unshare -nm"} {
		run := func(command ...string) ([]byte, error) {
			all := slices.Concat(strings.Fields(space), []string{"sh", "-c", enter, "sh", folder}, command)
			return exec.CommandContext(t.Context(), all[0], all[1:]...).CombinedOutput() //nolint:gosec // our own
		}
		if text, err := run("true"); err != nil {
			reasons = append(reasons, fmt.Sprintf("%s: %v %s", space, err, bytes.TrimSpace(text)))
			continue
		}
		only := flag.Lookup("test.run").Value.String()
		if !strings.HasPrefix(strings.TrimPrefix(only, "^"), "TestShipped/") {
			only = "^TestShipped$"
		}
		text, err := run("env", inside+"="+folder, "GORACE=atexit_sleep_ms=0", os.Args[0], "-test.v", "-test.run", only, fmt.Sprintf("-long=%t", *isLong), fmt.Sprint("-requests=", *requests), fmt.Sprint("-seed=", *seed))
		if t.Logf("%s", text); err != nil {
			t.Error(err)
		}
		return
	}
	notRun(t, strings.Join(reasons, "; "))
}

// notRun records that the shipped files were not run. make test prints it, and .ci/run fails.
func notRun(t *testing.T, reason string) {
	t.Helper()
	if file := os.Getenv("SIGNALBOX_NOT_RUN"); file != "" {
		write(t, file, "shipped files ("+reason+")\n")
	}
	t.Skip("NOT RUN: shipped files:", reason)
}

// writeCertificate writes a certificate for the providers' names, but not for the private
// host's. It is its own root.
func writeCertificate(t *testing.T, folder string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	kit.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		DNSNames: slices.DeleteFunc(slices.Collect(maps.Keys(hosts)), func(name string) bool { return name == privateHost }),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	kit.Must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	kit.Must(t, err)
	write(t, filepath.Join(folder, "ca.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})))
	write(t, filepath.Join(folder, "key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
}

// writeNames writes the addresses of the providers' names. Each is this machine, by an address
// that is not private, and has an IPv6 address, which this network does not reach.
func writeNames(t *testing.T, file string) {
	t.Helper()
	var all strings.Builder
	for name := range hosts {
		if name == lossyHost || name == newHost {
			continue // serveNames has it
		}
		address := map[bool]string{true: "127.0.0.1", false: "203.0.113.1"}[name == privateHost]
		_, _ = fmt.Fprintf(&all, "%s %s\n2001:db8::1 %s\n", address, name, name)
	}
	write(t, file, all.String())
}

// serveNames serves the addresses of two hosts from the second question on. It loses the first one
// for lossyHost.
func serveNames(t *testing.T) {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:53")
	kit.Must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	asked := map[string]int{}
	go func() {
		buffer := make([]byte, 1024)
		for {
			n, from, err := c.ReadFrom(buffer)
			if err != nil {
				return
			}
			question, _, _ := bytes.Cut(buffer[12:n], []byte{0})
			answer := append(buffer[:2:2], 0x81, 0x83, 0, 1, 0, 0, 0, 0, 0, 0) // no such name
			answer = append(append(answer, question...), 0, 0, 1, 0, 1)
			label := string(question[1 : 1+question[0]])
			if asked[label]++; asked[label] > 1 && hosts[label+".openai.azure.com"].isDocuments {
				answer[3], answer[7] = 0x80, 1
				answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 203, 0, 113, 1)
			}
			if label != "lossy" || asked[label] > 1 {
				_, _ = c.WriteTo(answer, from)
			}
		}
	}()
}
