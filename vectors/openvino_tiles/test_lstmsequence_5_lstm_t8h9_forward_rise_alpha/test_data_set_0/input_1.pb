	Binitial_hidden_stateJHο·½¬
Ύΰ>ªκ>•;¤=/zRΎyMΆ½x9ΐΎªψ:Σ]©Ύ² ―½ζοh½cΥ―ΎMw‘ΎΰΎΐίLΎφ1Ό>ϋΜΆ>