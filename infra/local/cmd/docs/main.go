// Command docs writes a static copy of the reference page, for any web host.
package main

import (
	"flag"
	"fmt"
	"os"

	"signalbox.dev/infra/local/docs"
)

func main() {
	root := flag.String("root", ".", "folder of the repository")
	to := flag.String("to", ".build/docs", "folder to write")
	server := flag.String("server", "", "base URL of the API (default: those that the document names)")
	flag.Parse()
	if err := docs.Copy(*root, *to, *server); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
	fmt.Println("The reference page is", *to+"/index.html")
}
