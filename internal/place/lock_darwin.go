package place

// guardsFiles: here a lock of flock's would shut SQLite out of the file.
const guardsFiles = false

// makesMountPoints: nothing is mounted for a confined command.
const makesMountPoints = false
