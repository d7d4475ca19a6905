package server

import "context"

// ChooseDynamoDB returns the DynamoDB for a state folder's tables; "" means the local server's
// own.
func ChooseDynamoDB(o Options) (endpoint string, err error) {
	chosen, err := chooseDynamoDB(o)
	return chosen.Endpoint, err
}

// Advise is the advice for the error of a start on a used state folder.
func Advise(ctx context.Context, dir string, err error) error {
	s := &Server{options: Options{State: dir}, used: true}
	return s.advise(ctx, err)
}
