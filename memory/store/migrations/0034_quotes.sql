-- Expands: what a message quotes stands beside it among the attachments, in rows whose kind begins with "quoted".

-- When words are erased, what quotes them goes too; it is found by the message that was answered.
create index messages_replies on messages (session_id, reply_to) where reply_to is not null;
