-- name: CreateUser :one
insert into users (name, request_key) values ($1, $2) on conflict (name) do nothing returning *;

-- name: UserByName :one
select * from users where name = $1;

-- name: GetUser :one
select * from users where id = $1;

-- name: CreatePhoto :one
insert into photos (user_id, title, request_key) values ($1, $2, $3)
on conflict (user_id, request_key) do nothing returning *;

-- name: PhotoByRequest :one
select * from photos where user_id = $1 and request_key = $2;

-- name: GetPhoto :one
select * from photos where id = $1;

-- name: PhotosOfUser :many
select * from photos where user_id = @user_id and id < @before order by id desc limit @page;

-- name: NewestOf :many
select * from photos where user_id = any(@friends::bigint[]) and id < @before order by id desc limit @page;

-- name: AddFriend :exec
insert into follows (user_id, friend_id) values ($1, $2) on conflict do nothing;

-- name: RemoveFriend :exec
delete from follows where user_id = $1 and friend_id = $2;

-- name: Friends :many
select friend_id from follows where user_id = $1 order by friend_id;

-- name: AddLike :execrows
insert into likes (photo_id, user_id) values ($1, $2) on conflict do nothing;

-- name: RemoveLike :execrows
delete from likes where photo_id = $1 and user_id = $2;

-- name: CountLikes :one
update photos set likes = likes + @more where id = $1 returning *;
