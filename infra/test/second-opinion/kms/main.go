// Command kms runs local-kms, another implementation of KMS, on one address: local-kms's
// own command listens on all interfaces of the machine.
//
//	kms HOST PORT FOLDER ACCOUNT REGION
package main

import (
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/nsmithuk/local-kms/src"
	"github.com/nsmithuk/local-kms/src/config"
	"github.com/nsmithuk/local-kms/src/data"
)

func main() {
	if len(os.Args) != 6 {
		log.Fatal("usage: kms HOST PORT FOLDER ACCOUNT REGION")
	}
	config.DatabasePath, config.AWSAccountId, config.AWSRegion = os.Args[3], os.Args[4], os.Args[5]
	database := data.NewDatabase(config.DatabasePath)
	server := http.Server{
		Addr:              net.JoinHostPort(os.Args[1], os.Args[2]),
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { src.HandleRequest(w, r, database) }),
		ReadHeaderTimeout: 10 * time.Second,
	}
	log.Fatal(server.ListenAndServe())
}
