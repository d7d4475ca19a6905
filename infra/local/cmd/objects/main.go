// Command objects is the S3 engine of the local server: versitygw, embedded, with
// its files in one folder and its deletes corrected. It is a separate process because
// versitygw changes its working directory, prints, and can run only once in a process.
package main

import (
	"context"
	"flag"
	"fmt"
	"hash/maphash"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
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
		Ports: []string{addr}, MaxConnections: 4096, MaxRequests: 2048, MultipartMaxParts: 10000,
		Quiet: true, KeepAlive: true, DisableACLs: true, HealthPath: "/health",
	})
}

// open makes the folders and the backend that uses them.
func open(dir string) (*deletes, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	objects, versions, metadata := filepath.Join(dir, "objects"), filepath.Join(dir, "versions"), filepath.Join(dir, "metadata")
	for _, folder := range []string{objects, versions, metadata} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
	}
	options := posix.PosixOpts{VersioningDir: versions, NewDirPerm: 0o700, NewFilePerm: 0o600, Concurrency: 256}
	// The metadata of objects is in extended attributes. On a file system without them it is
	// in a folder.
	var storer meta.MetadataStorer = meta.XattrMeta{}
	if (meta.XattrMeta{}).Test(objects) != nil {
		options.SideCarDir = metadata
		if storer, err = meta.NewSideCar(metadata); err != nil {
			return nil, err
		}
	}
	be, err := posix.New(objects, storer, options)
	if err != nil {
		return nil, fmt.Errorf("opening the objects: %w", err)
	}
	return &deletes{Backend: be, seed: maphash.MakeSeed()}, nil
}
