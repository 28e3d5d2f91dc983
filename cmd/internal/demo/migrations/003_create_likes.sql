-- A like lives on the photo's shard. Who likes may live on any shard: no foreign key to that user.
create table likes (
  photo_id bigint not null references photos,
  user_id bigint not null,
  primary key (photo_id, user_id)
);

---- create above / drop below ----

drop table likes;
