package kit

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// Hostile returns AWS variables that lead an SDK away from the engines: endpoints, a
// profile, an account. The test fails if anything connects to them.
func Hostile(t testing.TB) []string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Must(t, err)
	heard, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			heard++
			_ = connection.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		if <-ended; heard > 0 {
			t.Errorf("%d connections to the endpoint that the AWS variables name", heard)
		}
	})
	url := "http://" + listener.Addr().String()
	profile := filepath.Join(t.TempDir(), "config")
	Must(t, os.WriteFile(profile, fmt.Appendf(nil, "[profile hostile]\nregion = eu-west-3\nendpoint_url = %s\naws_access_key_id = AKIAHOSTILE\naws_secret_access_key = x\n", url), 0o600))
	variables := []string{
		"AWS_PROFILE=hostile", "AWS_CONFIG_FILE=" + profile, "AWS_SHARED_CREDENTIALS_FILE=" + profile, "AWS_REGION=eu-west-3", "AWS_DEFAULT_REGION=eu-west-3",
		"AWS_ACCESS_KEY_ID=AKIAHOSTILE", "AWS_SECRET_ACCESS_KEY=x", "AWS_SESSION_TOKEN=x", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS=true",
	}
	// A variable for one service makes the SDK ask the config for that service again.
	for _, service := range []string{"", "_S3", "_STS", "_CLOUDFORMATION"} {
		variables = append(variables, "AWS_ENDPOINT_URL"+service+"="+url)
	}
	return variables
}
