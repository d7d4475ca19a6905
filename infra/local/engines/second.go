package engines

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// secondOpinion returns the path of what infra/second-opinion/install installed.
func secondOpinion(root string, name ...string) (string, error) {
	path, err := filepath.Abs(filepath.Join(append([]string{root, ".build", "second-opinion"}, name...)...))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("an engine is missing; install it: infra/second-opinion/install (%w)", err)
	}
	return path, nil
}

// java runs a program of the JVM with little memory and a fast start.
func java(temporary string, arguments ...string) *exec.Cmd {
	flags := []string{"-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.io.tmpdir=" + temporary}
	cmd := exec.Command("java", append(flags, arguments...)...) //nolint:gosec // a pinned engine
	cmd.Env = []string{}
	return cmd
}

// dynamoDBLocal is AWS's own DynamoDB Local.
func dynamoDBLocal(c Config) (program, error) {
	lib, err := secondOpinion(c.Root, "dynamodb")
	dir := filepath.Join(c.Dir, "dynamodb-local")
	return program{name: "dynamodb-local", dir: dir, command: func(port string) *exec.Cmd {
		return java(dir, "-Djava.library.path="+lib, "-cp", filepath.Join(lib, "*"),
			"com.amazonaws.services.dynamodbv2.local.main.ServerRunner", "-port", port, "-dbPath", dir, "-disableTelemetry")
	}}, err
}

// s3Mock is Adobe's S3Mock.
func s3Mock(c Config) (program, error) {
	lib, err := secondOpinion(c.Root, "s3")
	dir := filepath.Join(c.Dir, "s3mock")
	return program{name: "s3mock", dir: dir, command: func(port string) *exec.Cmd {
		return java(dir, "-Dserver.address="+c.Host, "-Dhttp.port="+port, "-Dserver.port=0",
			"-Dcom.adobe.testing.s3mock.store.root="+dir, "-jar", filepath.Join(lib, "s3mock.jar"))
	}}, err
}

// moto is the KMS of moto, which keeps nothing on disk.
func moto(c Config) (program, error) {
	binary, err := secondOpinion(c.Root, "venv", "bin", "moto_server")
	return program{name: "moto", dir: filepath.Join(c.Dir, "moto"), command: func(port string) *exec.Cmd {
		cmd := exec.Command(binary, "-H", c.Host, "-p", port) //nolint:gosec // the pinned engine
		cmd.Env = []string{}
		return cmd
	}}, err
}
