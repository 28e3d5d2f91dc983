-- name: CreateAlbum :one
insert into albums (owner, title, seen_by, tags) values ($1, $2, $3, $4) returning *;

-- name: GetAlbum :one
select * from albums where id = $1;

-- name: ListAlbums :many
select * from albums where owner = $1 order by id;

-- name: PublishAlbum :exec
update albums set seen_by = 'public' where id = $1;

-- name: DeleteAlbums :execrows
delete from albums where owner = $1;

-- name: RenameAlbum :batchexec
update albums set title = $2 where id = $1;

-- name: TitleOfAlbum :batchone
select title from albums where id = $1;

-- name: AlbumsSeenBy :batchmany
select id from albums where seen_by = $1 order by id;

-- name: CopyAlbums :copyfrom
insert into albums (id, owner, title, seen_by, tags) values ($1, $2, $3, $4, $5);
