package edition

// ChooseDynamoDB returns where a state folder's tables are, or are to be; "" means in
// a DynamoDB of the edition's own.
func ChooseDynamoDB(o Options, hasOwn bool) (endpoint string, err error) {
	chosen, err := chooseDynamoDB(o, hasOwn)
	return chosen.Endpoint, err
}
