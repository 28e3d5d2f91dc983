---- tern: disable-tx ----
create index concurrently likes_of_user on likes (user_id);

---- create above / drop below ----

drop index concurrently likes_of_user;
