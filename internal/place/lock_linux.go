package place

// guardsFiles: a lock of flock's and those of fcntl, which SQLite takes, do not
// know of each other.
const guardsFiles = true

// makesMountPoints: bubblewrap does.
const makesMountPoints = true
