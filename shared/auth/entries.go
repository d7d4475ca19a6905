package auth

import "signalbox.dev/shared/ids"

// listEntry is an entry of a list; see items.go.
type listEntry struct {
	primaryKey
	Version int `dynamodbav:"v"`
}

// workspaceOf is where the workspace stands in the list of its account.
func workspaceOf(account ids.Account, id ids.Workspace) primaryKey {
	return primaryKey{accountAt(account).PK, workspaceAt(id).PK}
}

// lists are the places where the key is listed: with its account, and with the
// workspace it is bound to.
func (k keyItem) lists() []primaryKey {
	places := []primaryKey{{accountAt(k.Account).PK, k.PK}}
	if k.Workspace != "" {
		places = append(places, primaryKey{workspaceAt(k.Workspace).PK, k.PK})
	}
	return places
}
