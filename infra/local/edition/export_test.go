package edition

// ChooseDynamoDB returns the DynamoDB for a state folder's tables; "" means the edition's
// own.
func ChooseDynamoDB(o Options, hasOwn bool) (endpoint string, err error) {
	chosen, err := chooseDynamoDB(o, hasOwn)
	return chosen.Endpoint, err
}
