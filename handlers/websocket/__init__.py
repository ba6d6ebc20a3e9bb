"""Apache's WebSocket endpoints (`/ws/v2/producer|consumer|reader`): sessions in JSON that stand on the binary protocol."""
