package history

import "fmt"

// unknown is the credential of a create whose answer was lost.
const unknown = "?"

// An idempotency key belongs to the first request that succeeds under it.
type memory struct{ request, credential string }

func onceFirst(k, request, credential string) event {
	return on("once "+k, request+" makes "+credential, func(s memory) (bool, memory) {
		return s == memory{}, memory{request, credential}
	})
}

// onceReplayed is the answer to the same request again.
func onceReplayed(k, request, credential string) event {
	return on("once "+k, request+" replays "+credential, func(s memory) (bool, memory) {
		return s.request == request && (s.credential == credential || s.credential == unknown), memory{request, credential}
	})
}

// onceEither is a replay that may be of the request's own first attempt.
func onceEither(k, request, credential string) event {
	return on("once "+k, request+" makes or replays "+credential, func(s memory) (bool, memory) {
		same := s.request == request && (s.credential == credential || s.credential == unknown)
		return same || s == memory{}, memory{request, credential}
	})
}

func onceOther(k, request string) event {
	return on("once "+k, request+" is another", func(s memory) (bool, memory) {
		return s.request != "" && s.request != request, s
	})
}

func onceFree(k string) event {
	return on("once "+k, "is free", func(s memory) (bool, memory) { return s == memory{}, s })
}

// oncePerhaps is a create whose answer was lost.
func oncePerhaps(k, request string) event {
	return on("once "+k, request+", perhaps", func(s memory) (bool, memory) {
		if s == (memory{}) {
			s = memory{request, unknown}
		}
		return true, s
	})
}

// A credential of one name is stored at most once.
func credentialStored(name, id string) event {
	return on("credential "+name, "store "+id, func(s string) (bool, string) { return s == "", id })
}

func credentialPerhaps(name string) event {
	return on("credential "+name, "perhaps stored", func(s string) (bool, string) {
		if s == "" {
			s = unknown
		}
		return true, s
	})
}

// credentialSeen is a look at it: what is there, or "" for nothing.
func credentialSeen(name, id string) event {
	return on("credential "+name, fmt.Sprintf("is %q", id), func(s string) (bool, string) {
		return s == id || s == unknown && id != "", id
	})
}

// A file is there from its upload to its deletion.
type file struct{ there bool }

func fileUploaded(f string) event {
	return on("file "+f, "upload", func(s file) (bool, file) { return !s.there, file{true} })
}

// filePerhapsUploaded is an upload of which it is not known whether it was its
// own doing that the file was found to be there.
func filePerhapsUploaded(f string) event {
	return on("file "+f, "perhaps upload", func(file) (bool, file) { return true, file{true} })
}

func fileDeleted(f string) event {
	return on("file "+f, "delete", func(s file) (bool, file) { return s.there, file{} })
}

func filePerhapsDeleted(f string) event {
	return on("file "+f, "perhaps delete", func(file) (bool, file) { return true, file{} })
}

func fileSeen(f string, there bool) event {
	return on("file "+f, fmt.Sprintf("there=%t", there), func(s file) (bool, file) { return s.there == there, s })
}

// A sync job goes from queued to running to succeeded.
type job struct{ status string }

func (j job) now() string {
	if j.status == "" {
		return "queued"
	}
	return j.status
}

func jobMoved(id, from, to string) event {
	return on("job "+id, "to "+to, func(s job) (bool, job) { return s.now() == from, job{to} })
}

func jobPerhapsMoved(id, from, to string) event {
	return on("job "+id, "perhaps to "+to, func(s job) (bool, job) {
		if s.now() == from {
			s = job{to}
		}
		return true, s
	})
}

func jobKept(id, from string) event {
	return on("job "+id, "is not "+from, func(s job) (bool, job) { return s.now() != from, s })
}

func jobSeen(id, status string) event {
	return on("job "+id, "is "+status, func(s job) (bool, job) { return s.now() == status, s })
}
