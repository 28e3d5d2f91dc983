package connect

import "github.com/kiloshard/kiloshard/shards"

// Check returns the error with which [Open] would refuse a host's DSN, or one of its replicas', without a connection: for
// programs that read a config. The number of the replica is -1 for the host itself. The error shows nothing of the DSN.
func Check(host shards.Host) (replica int, err error) {
	if _, err := parse(host); err != nil {
		return -1, err
	}
	for i := range host.Replicas {
		if _, err := parse(host.Replica(i)); err != nil {
			return i, err
		}
	}
	return -1, nil
}
