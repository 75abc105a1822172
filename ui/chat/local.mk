# ui/chat: the chat pane: cleaning, wrapping, Markdown, transcript, chats on disk.
