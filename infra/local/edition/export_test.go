package edition

import "io"

// WatchDisk watches a disk of a test's making until the returned function is
// called.
func WatchDisk(full func() bool, warnings io.Writer, recovered func()) (stop func()) {
	return watchDisk(full, warnings, recovered).close
}

// ChooseDynamoDB returns where a state folder's tables are, or are to be; "" means in
// a DynamoDB of the edition's own.
func ChooseDynamoDB(o Options, hasOwn bool) (endpoint string, err error) {
	chosen, err := chooseDynamoDB(o, hasOwn)
	return chosen.Endpoint, err
}
