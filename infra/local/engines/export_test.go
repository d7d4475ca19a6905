package engines

// Front is the proxy before ExtendDB.
var Front = front
