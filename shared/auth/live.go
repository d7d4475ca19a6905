package auth

import "signalbox.dev/shared/ids"

// LiveIn returns ErrNoWorkspace unless the workspace is live and the account's. It
// is for a caller who answers for the account itself, such as the platform's router.
func (f Found) LiveIn(account ids.Account) error {
	_, err := f.For(Caller{account: account, kind: Management})
	return err
}
