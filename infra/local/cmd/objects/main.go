// Command objects is the S3 engine of the local server: versitygw, embedded, with
// its files in one folder and its deletes corrected. It is a separate process because
// versitygw changes its working directory, prints, and can run only once in a process.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

// Bounds for a single machine.
const (
	connections  = 4096
	requests     = 2048
	maxParts     = 10000
	filePerm     = 0o600
	folderPerm   = 0o700
	openActions  = 256
	sidecarName  = "metadata"
	objectsName  = "objects"
	versionsName = "versions"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:7070", "where to listen")
	dir := flag.String("dir", ".", "the folder of the objects")
	access := flag.String("access-key", "", "the access key id to accept")
	secret := flag.String("secret-key", "", "its secret")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, *dir, *access, *secret); err != nil {
		fmt.Fprintln(os.Stderr, "objects:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, addr, dir, access, secret string) error {
	be, err := open(dir)
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(ctx, be, &embedgw.Config{
		RootUserAccess: access, RootUserSecret: secret,
		Ports: []string{addr}, MaxConnections: connections, MaxRequests: requests, MultipartMaxParts: maxParts,
		Quiet: true, KeepAlive: true, DisableACLs: true, HealthPath: "/health",
	})
}

// open makes the folders and the backend that uses them.
func open(dir string) (*deletes, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{objectsName, versionsName, sidecarName} {
		if err := os.MkdirAll(filepath.Join(dir, name), folderPerm); err != nil {
			return nil, err
		}
	}
	options := posix.PosixOpts{
		VersioningDir: filepath.Join(dir, versionsName),
		NewDirPerm:    folderPerm, NewFilePerm: filePerm, Concurrency: openActions,
	}
	storer, err := metadata(dir, &options)
	if err != nil {
		return nil, err
	}
	be, err := posix.New(filepath.Join(dir, objectsName), storer, options)
	if err != nil {
		return nil, fmt.Errorf("opening the objects: %w", err)
	}
	return newDeletes(be), nil
}

// metadata keeps the metadata of objects in extended attributes, or, on a
// file system without them, in a folder beside the objects.
func metadata(dir string, options *posix.PosixOpts) (meta.MetadataStorer, error) {
	if (meta.XattrMeta{}).Test(filepath.Join(dir, objectsName)) == nil {
		return meta.XattrMeta{}, nil
	}
	options.SideCarDir = filepath.Join(dir, sidecarName)
	return meta.NewSideCar(options.SideCarDir)
}
