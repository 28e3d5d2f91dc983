// Package service is a photo service over HTTP whose users are spread over the shards of a cluster.
//
//	POST   /users                          {"name": "ann"}           sign up
//	GET    /users/{id}                                               a user
//	POST   /users/{id}/photos              {"title": "the sea"}      a new photo
//	GET    /users/{id}/photos?before=&limit=                         the user's photos, newest first
//	GET    /users/{id}/feed?before=&limit=                           the photos of all friends, newest first
//	GET    /users/{id}/friends                                       whom the user follows
//	POST   /users/{id}/follow/{friend}     DELETE to stop            follow somebody
//	GET    /photos/{id}                                              a photo
//	POST   /photos/{id}/likes/{user}       DELETE to take it back    like a photo
//	POST   /users/{id}/boards             {"name": "dogs"}           a new board
//	GET    /boards/{id}                                              a board
//	POST   /boards/{id}/photos/{photo}                               keep a photo on a board
//	PUT    /notes/{id}                    {"user": "7", "text": "…"} a note, whose ID its writer has chosen
//	GET    /users/{id}/notes                                         the user's notes
//	GET    /healthz, /readyz, /metrics
//
// # Where things are
//
// The directory gives each new name a shard, and the user's row is made there, with an ID that names the shard. All else
// of the user goes by that ID, so that the directory is asked at sign-up only. What belongs together is in one shard: a
// user with photos, friends and boards, a photo with its likes. A note is in the shard of its own ID, and an index finds it by its user. What reaches over shards, such as a friend, is an ID and nothing
// that Postgres checks.
//
// # Who sends a request again
//
// All requests may be sent again. Those that make something new want an Idempotency-Key in their header, a text of the
// sender's choice for each thing that is to be made: the same key gets the same answer, and makes nothing new. The
// answers tell whether it is worth it:
//
//   - 503 with Retry-After: the host of this user is down, or others were faster; nothing was done.
//   - 504 with Retry-After: it took too long, or the host was lost underway; it may have been done or not.
//   - All others are final.
//
// There is no login: this is an example of routing.
package service
